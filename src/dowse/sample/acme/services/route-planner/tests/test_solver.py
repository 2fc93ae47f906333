"""Small tours with known answers."""

from route_planner.solver import detour, improve_two_opt, insert_cheapest, sequence_minutes, tour_id

# Four stops on a line: depot at 0, stops at 1, 2, 3 and 4 minutes.
LINE = [[abs(a - b) for b in range(5)] for a in range(5)]


def test_a_line_is_driven_out_and_back_once():
    assert sequence_minutes(insert_cheapest(LINE), LINE) == 2 * 4


def test_two_opt_untangles_a_crossing():
    assert sequence_minutes(improve_two_opt([1, 3, 2, 4], LINE, 1.0), LINE) == 2 * 4


def test_a_stop_on_the_way_is_no_detour():
    assert detour([4], 0, 2, LINE) == 0


def test_the_same_parcels_in_another_sequence_are_the_same_tour():
    assert tour_id(("WFAAAA2222", "WFBBBB3333")) == tour_id(("WFBBBB3333", "WFAAAA2222"))
