"""Campaign of faults against Dowse: kills, lost power, damage, full disks, hostile input, long runs."""
