package example.wrenfold.tracking;

import java.time.Instant;
import java.util.List;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** What other services and the tracking page ask. */
@RestController
public class TrackingController {

    public record Entry(Instant at, String depot, String event) {}

    public record Timeline(List<Entry> entries, Instant estimatedArrival) {}

    public record Depot(String code) {}

    private final TimelineRepository timelines;
    private final EtaCalculator eta;

    public TrackingController(TimelineRepository timelines, EtaCalculator eta) {
        this.timelines = timelines;
        this.eta = eta;
    }

    @GetMapping("/shipments/{number}/timeline")
    public Timeline timeline(@PathVariable String number) {
        List<ScanEvent> scans = timelines.scansOf(number);
        if (scans.isEmpty()) {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND, "WF-4041 no scans for " + number);
        }
        List<Entry> entries =
                scans.stream().map(scan -> new Entry(scan.scannedAt(), scan.depot(), scan.event())).toList();
        return new Timeline(entries, eta.estimate(scans).orElse(null));
    }

    @GetMapping("/depots")
    public List<Depot> depots(@RequestParam(defaultValue = "closed") String state) {
        if (!state.equals("closed")) {
            throw new ResponseStatusException(HttpStatus.BAD_REQUEST, "only state=closed is known");
        }
        return timelines.closedDepots().stream().map(Depot::new).toList();
    }
}
