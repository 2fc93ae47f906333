package example.wrenfold.tracking;

import java.sql.Timestamp;
import java.util.List;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Repository;
import org.springframework.transaction.annotation.Transactional;

/** Timelines in Postgres: one row per scan, never updated. */
@Repository
public class TimelineRepository {

    private final JdbcTemplate jdbc;

    public TimelineRepository(JdbcTemplate jdbc) {
        this.jdbc = jdbc;
    }

    /** Opens the timelines of a tour; those that exist stay as they are. */
    @Transactional
    public void open(String tourId, List<String> numbers) {
        jdbc.batchUpdate(
                "INSERT INTO timelines (number, tour_id) VALUES (?, ?) ON CONFLICT (number) DO NOTHING",
                numbers.stream().map(number -> new Object[] {number, tourId}).toList());
    }

    /**
     * Adds a scan.
     *
     * @return false when it was there already
     */
    public boolean append(ScanEvent scan) {
        int inserted =
                jdbc.update(
                        """
                        INSERT INTO scans (handheld, sequence, number, depot, event, scanned_at)
                        VALUES (?, ?, ?, ?, ?, ?)
                        ON CONFLICT (handheld, sequence, number) DO NOTHING
                        """,
                        scan.handheld(),
                        scan.sequence(),
                        scan.number(),
                        scan.depot(),
                        scan.event(),
                        Timestamp.from(scan.scannedAt()));
        return inserted == 1;
    }

    /** Scans of one shipment by time on the device; a late one takes its rightful place. */
    public List<ScanEvent> scansOf(String number) {
        return jdbc.query(
                "SELECT * FROM scans WHERE number = ? ORDER BY scanned_at, sequence",
                (row, index) ->
                        new ScanEvent(
                                row.getString("handheld"),
                                row.getLong("sequence"),
                                row.getString("number"),
                                row.getString("depot"),
                                row.getString("event"),
                                row.getTimestamp("scanned_at").toInstant()),
                number);
    }

    public List<String> closedDepots() {
        return jdbc.queryForList("SELECT code FROM depot_closures WHERE until > now() ORDER BY code", String.class);
    }
}
