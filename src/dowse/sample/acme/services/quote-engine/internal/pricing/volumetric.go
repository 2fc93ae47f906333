package pricing

// VolumetricDivisor is the contract's figure: 5,000 cubic centimetres count as one kilogram.
const VolumetricDivisor = 5000

// Dimensions of a parcel in millimetres.
type Dimensions struct {
	LengthMM, WidthMM, HeightMM int32
}

// VolumetricGrams converts the space a parcel takes up in a vehicle into the grams it is billed as.
//
// A lampshade fills a bike crate that could have carried forty books, so tariffs go by whichever is larger: what the
// scale shows or what the tape measure implies. Rounded up to the next 100 g, as printed in the merchants' terms.
func VolumetricGrams(d Dimensions) int64 {
	cubicMM := int64(d.LengthMM) * int64(d.WidthMM) * int64(d.HeightMM)
	grams := cubicMM / VolumetricDivisor // mm³ / (cm³ per kg) happens to be grams
	return roundUp(grams, 100)
}

// BillableGrams is the larger of scale weight and volumetric weight.
func BillableGrams(scaleGrams int32, d Dimensions) int64 {
	return max(roundUp(int64(scaleGrams), 100), VolumetricGrams(d))
}

func roundUp(value, step int64) int64 {
	return (value + step - 1) / step * step
}
