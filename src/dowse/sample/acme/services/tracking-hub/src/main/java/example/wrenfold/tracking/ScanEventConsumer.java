package example.wrenfold.tracking;

import java.time.Clock;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.amqp.AmqpRejectAndDontRequeueException;
import org.springframework.amqp.rabbit.annotation.Exchange;
import org.springframework.amqp.rabbit.annotation.Queue;
import org.springframework.amqp.rabbit.annotation.QueueBinding;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.dao.DataIntegrityViolationException;
import org.springframework.stereotype.Component;

/** Listens on parcel-bus for scans and planned tours. */
@Component
public class ScanEventConsumer {

    private static final Logger log = LoggerFactory.getLogger(ScanEventConsumer.class);

    private final TimelineRepository timelines;
    private final EtaCalculator eta;
    private final RecipientNotifier notifier;
    private final Clock clock;
    private final Duration maxSkew;

    public ScanEventConsumer(
            TimelineRepository timelines,
            EtaCalculator eta,
            RecipientNotifier notifier,
            Clock clock,
            @Value("${tracking.scan.max-skew}") Duration maxSkew) {
        this.timelines = timelines;
        this.eta = eta;
        this.notifier = notifier;
        this.clock = clock;
        this.maxSkew = maxSkew;
    }

    /** A scan that was seen before changes nothing, so the broker may deliver as often as it likes. */
    @RabbitListener(
            bindings =
                    @QueueBinding(
                            value = @Queue(name = "tracking.depot-scan", durable = "true"),
                            exchange = @Exchange(name = "parcels.events", type = "topic"),
                            key = "depot.scan"))
    public void onScan(ScanEvent raw) {
        ScanEvent scan = raw.corrected(clock.instant(), maxSkew);
        try {
            if (!timelines.append(scan)) {
                log.debug("scan {}/{} was already there", scan.handheld(), scan.sequence());
                return;
            }
        } catch (DataIntegrityViolationException unknownShipment) {
            // Scanned before it was booked here: a stray label. Trying again would never help.
            throw new AmqpRejectAndDontRequeueException("WF-4041 unknown shipment " + scan.number(), unknownShipment);
        }
        eta.observe(scan);
        notifier.afterScan(scan);
    }

    /** A planned tour opens the timelines of its shipments. */
    @RabbitListener(
            bindings =
                    @QueueBinding(
                            value = @Queue(name = "tracking.route-planned", durable = "true"),
                            exchange = @Exchange(name = "parcels.events", type = "topic"),
                            key = "route.planned"))
    public void onRoutePlanned(PlannedTour tour) {
        timelines.open(tour.id(), tour.shipments());
    }
}
