package example.wrenfold.tracking;

import java.time.Clock;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.HttpHeaders;
import org.springframework.stereotype.Component;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestClientException;

/** Texts the recipient when a parcel is out for delivery and when it has arrived. Never at night. */
@Component
public class RecipientNotifier {

    private static final Logger log = LoggerFactory.getLogger(RecipientNotifier.class);

    private final RestClient bookingApi;
    private final RestClient gateway;
    private final LocalTime quietFrom;
    private final LocalTime quietUntil;
    private final Clock clock;

    record Recipient(String phone, String locale) {}

    public RecipientNotifier(
            @Value("${tracking.booking-api-url}") String bookingApiUrl,
            @Value("${tracking.notify.gateway-url}") String gatewayUrl,
            @Value("${tracking.notify.api-key}") String apiKey,
            @Value("${tracking.notify.quiet-from}") LocalTime quietFrom,
            @Value("${tracking.notify.quiet-until}") LocalTime quietUntil,
            Clock clock) {
        this.bookingApi = RestClient.create(bookingApiUrl);
        this.gateway =
                RestClient.builder()
                        .baseUrl(gatewayUrl)
                        .defaultHeader(HttpHeaders.AUTHORIZATION, "Key " + apiKey)
                        .build();
        this.quietFrom = quietFrom;
        this.quietUntil = quietUntil;
        this.clock = clock;
    }

    /** A text that cannot be sent is logged and forgotten: it must never hold up the scan. */
    public void afterScan(ScanEvent scan) {
        String template =
                switch (scan.event()) {
                    case "DEPARTED" -> "on-its-way";
                    case "DELIVERED" -> "delivered";
                    default -> null;
                };
        if (template == null || isQuietHour()) {
            return;
        }
        try {
            Recipient recipient =
                    bookingApi.get().uri("/internal/recipients/{n}", scan.number()).retrieve().body(Recipient.class);
            if (recipient == null || recipient.phone() == null) {
                return;
            }
            gateway.post()
                    .uri("/messages")
                    .body(Map.of("to", recipient.phone(), "template", template, "locale", recipient.locale()))
                    .retrieve()
                    .toBodilessEntity();
        } catch (RestClientException err) {
            log.warn("no text for shipment {}: {}", scan.number(), err.getMessage());
        }
    }

    /** Quiet hours wrap around midnight. */
    boolean isQuietHour() {
        LocalTime now = LocalTime.ofInstant(clock.instant(), ZoneOffset.UTC);
        return now.isAfter(quietFrom) || now.isBefore(quietUntil);
    }
}
