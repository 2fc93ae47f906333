package example.wrenfold.tracking;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.util.List;

/** A tour as route-planner announces it; fields that are not needed here are ignored. */
@JsonIgnoreProperties(ignoreUnknown = true)
public record PlannedTour(String id, String depot, String window, List<String> shipments) {}
