package pricing

import "testing"

func TestBillableGramsTakesTheLarger(t *testing.T) {
	cases := []struct {
		name       string
		scaleGrams int32
		dims       Dimensions
		want       int64
	}{
		{"dense book", 1_240, Dimensions{240, 170, 40}, 1_300},
		{"lampshade", 600, Dimensions{500, 500, 400}, 20_000},
		{"exact step", 500, Dimensions{100, 100, 250}, 500},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := BillableGrams(c.scaleGrams, c.dims); got != c.want {
				t.Errorf("BillableGrams(%d, %+v) = %d, want %d", c.scaleGrams, c.dims, got, c.want)
			}
		})
	}
}

func TestZoneBetweenCountsSharedDigits(t *testing.T) {
	if zone := ZoneBetween("20095", "20099"); zone != 1 {
		t.Errorf("same town is zone 1, got %d", zone)
	}
	if zone := ZoneBetween("20095", "80331"); zone != 3 {
		t.Errorf("far away is zone 3, got %d", zone)
	}
}
