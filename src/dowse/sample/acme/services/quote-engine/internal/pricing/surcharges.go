package pricing

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
	"time"

	quotesv1 "wrenfold.example/quote-engine/gen/quotes/v1"
)

const (
	fragileCents  = 180
	remoteCents   = 450
	saturdayCents = 320
)

// remotePrefixes are the postcodes served by ferry; the list comes from the depots, not from geography.
var remotePrefixes = []string{"259", "264", "265", "278"}

// price applies tariff and surcharges. The order matters: fuel is a share of everything before it.
func (s *Service) price(req *quotesv1.GetQuoteRequest) (Breakdown, error) {
	parcel := req.GetParcel()
	grams := BillableGrams(parcel.GetWeightGrams(), Dimensions{
		LengthMM: parcel.GetLengthMm(), WidthMM: parcel.GetWidthMm(), HeightMM: parcel.GetHeightMm(),
	})
	zone := ZoneBetween(req.GetOriginPostcode(), req.GetDestinationPostcode())
	net, ok := s.tariffs.NetCents(req.GetMerchantId(), zone, grams)
	if !ok {
		return Breakdown{}, ErrNoTariff
	}

	breakdown := Breakdown{NetCents: net}
	if parcel.GetFragile() {
		breakdown.add("FRAGILE", fragileCents)
	}
	if isRemote(req.GetDestinationPostcode()) {
		breakdown.add("REMOTE", remoteCents)
	}
	collectAt := req.GetCollectAt().AsTime()
	if collectAt.Weekday() == time.Saturday {
		breakdown.add("SATURDAY", saturdayCents)
	}
	basisPoints, stale := s.fuel.BasisPoints(collectAt)
	breakdown.add("FUEL", breakdown.TotalCents()*basisPoints/10_000)
	breakdown.FuelStale = stale
	return breakdown, nil
}

func (b *Breakdown) add(code string, cents int64) {
	b.Surcharges = append(b.Surcharges, Surcharge{Code: code, AmountCents: cents})
}

func isRemote(postcode string) bool {
	for _, prefix := range remotePrefixes {
		if strings.HasPrefix(postcode, prefix) {
			return true
		}
	}
	return false
}

// ZoneBetween is 1 inside a town, 2 inside a region and 3 for everything else, judged by shared postcode digits.
func ZoneBetween(origin, destination string) int {
	shared := 0
	for shared < len(origin) && shared < len(destination) && origin[shared] == destination[shared] {
		shared++
	}
	switch {
	case shared >= 3:
		return 1
	case shared >= 1:
		return 2
	default:
		return 3
	}
}

func newQuoteID() string {
	var raw [10]byte
	if _, err := rand.Read(raw[:]); err != nil {
		panic("no randomness from the operating system: " + err.Error())
	}
	return "q_" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw[:])
}
