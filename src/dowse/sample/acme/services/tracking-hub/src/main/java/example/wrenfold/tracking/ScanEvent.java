package example.wrenfold.tracking;

import java.time.Duration;
import java.time.Instant;

/**
 * One beep of a handheld.
 *
 * @param handheld serial number of the device
 * @param sequence counts up per device; with the handheld and the shipment it identifies the scan
 * @param number the shipment
 * @param depot three letters, see data/depots.csv
 * @param event what the courier pressed: COLLECTED, ARRIVED, DEPARTED, DELIVERED, REFUSED
 * @param scannedAt time on the device, which may be wrong
 */
public record ScanEvent(
        String handheld, long sequence, String number, String depot, String event, Instant scannedAt) {

    /** The same scan with a believable time: a device clock that is ahead is set to the moment of receipt. */
    public ScanEvent corrected(Instant receivedAt, Duration maxSkew) {
        if (scannedAt.isAfter(receivedAt.plus(maxSkew))) {
            return new ScanEvent(handheld, sequence, number, depot, event, receivedAt);
        }
        return this;
    }

    public boolean isFinal() {
        return event.equals("DELIVERED") || event.equals("REFUSED");
    }
}
