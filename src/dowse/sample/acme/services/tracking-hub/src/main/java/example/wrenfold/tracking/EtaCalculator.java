package example.wrenfold.tracking;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/**
 * Guesses when a parcel will be at the door.
 *
 * <p>Per pair of depots an exponentially smoothed travel time is kept: {@code new = old + factor * (seen - old)}. Until
 * there are enough samples the timetable's figure is used.
 */
@Component
public class EtaCalculator {

    private static final Duration TIMETABLE = Duration.ofHours(9);

    private final TimelineRepository timelines;
    private final double smoothingFactor;
    private final int minimumSamples;
    private final Map<String, Leg> legs = new ConcurrentHashMap<>();

    record Leg(double minutes, int samples) {}

    public EtaCalculator(
            TimelineRepository timelines,
            @Value("${tracking.eta.smoothing-factor}") double smoothingFactor,
            @Value("${tracking.eta.minimum-samples}") int minimumSamples) {
        if (smoothingFactor <= 0 || smoothingFactor > 1) {
            throw new IllegalArgumentException(
                    "tracking.eta.smoothing-factor is " + smoothingFactor + ", it must be in (0, 1]");
        }
        this.timelines = timelines;
        this.smoothingFactor = smoothingFactor;
        this.minimumSamples = minimumSamples;
    }

    /** Learns from an arrival how long the way from the last departure took. */
    public void observe(ScanEvent scan) {
        if (!scan.event().equals("ARRIVED")) {
            return;
        }
        lastDeparture(timelines.scansOf(scan.number()))
                .ifPresent(from -> legs.merge(key(from, scan), first(from, scan), this::smooth));
    }

    /** Empty when the parcel has not left a depot yet, or has arrived. */
    public Optional<Instant> estimate(List<ScanEvent> scans) {
        if (scans.stream().anyMatch(ScanEvent::isFinal)) {
            return Optional.empty();
        }
        return lastDeparture(scans).map(from -> from.scannedAt().plus(expected(from.depot())));
    }

    private Duration expected(String fromDepot) {
        return legs.entrySet().stream()
                .filter(entry -> entry.getKey().startsWith(fromDepot + ">"))
                .filter(entry -> entry.getValue().samples() >= minimumSamples)
                .map(entry -> Duration.ofMinutes(Math.round(entry.getValue().minutes())))
                .max(Duration::compareTo)
                .orElse(TIMETABLE);
    }

    private Leg smooth(Leg old, Leg seen) {
        return new Leg(old.minutes() + smoothingFactor * (seen.minutes() - old.minutes()), old.samples() + 1);
    }

    private static Leg first(ScanEvent from, ScanEvent to) {
        return new Leg(Duration.between(from.scannedAt(), to.scannedAt()).toMinutes(), 1);
    }

    private static String key(ScanEvent from, ScanEvent to) {
        return from.depot() + ">" + to.depot();
    }

    private static Optional<ScanEvent> lastDeparture(List<ScanEvent> scans) {
        return scans.stream().filter(scan -> scan.event().equals("DEPARTED")).reduce((earlier, later) -> later);
    }
}
