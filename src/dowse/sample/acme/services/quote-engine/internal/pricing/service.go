// Package pricing turns a parcel into an amount in cents.
package pricing

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/grpc/grpc-go/codes"
	"github.com/grpc/grpc-go/status"
	"github.com/protocolbuffers/protobuf-go/types/known/timestamppb"

	quotesv1 "wrenfold.example/quote-engine/gen/quotes/v1"
	"wrenfold.example/quote-engine/internal/cache"
	"wrenfold.example/quote-engine/internal/store"
)

// ErrNoTariff means that a merchant has no contract for the zone; it is the caller's problem, not an outage.
var ErrNoTariff = errors.New("no tariff for merchant and zone")

// FuelIndex gives the surcharge in basis points and whether it is older than allowed.
type FuelIndex interface {
	BasisPoints(at time.Time) (basisPoints int64, stale bool)
}

// Service implements quotesv1.QuoteServiceServer.
type Service struct {
	quotesv1.UnimplementedQuoteServiceServer
	tariffs *store.Tariffs
	fuel    FuelIndex
	quotes  *cache.Quotes
	now     func() time.Time
}

// NewService returns a service that uses the wall clock.
func NewService(tariffs *store.Tariffs, fuel FuelIndex, quotes *cache.Quotes) *Service {
	return &Service{tariffs: tariffs, fuel: fuel, quotes: quotes, now: time.Now}
}

// GetQuote prices one parcel and remembers the answer for fifteen minutes.
func (s *Service) GetQuote(ctx context.Context, req *quotesv1.GetQuoteRequest) (*quotesv1.GetQuoteResponse, error) {
	if shown, err := s.quotes.Recall(ctx, req.GetQuoteId()); err == nil && shown != nil {
		return shown, nil
	}
	breakdown, err := s.price(req)
	switch {
	case errors.Is(err, ErrNoTariff):
		return nil, status.Errorf(codes.FailedPrecondition, "merchant %s: %v", req.GetMerchantId(), err)
	case err != nil:
		return nil, status.Error(codes.Internal, err.Error())
	}
	response := breakdown.response(s.now().Add(cache.QuoteTTL))
	if err := s.quotes.Remember(ctx, response); err != nil {
		// A quote that is not remembered is computed again at booking time: slower, rarely different, never wrong.
		slog.Warn("rate-cache refused a quote", "quote", response.GetQuoteId(), "error", err)
	}
	return response, nil
}

// GetKilometreRate is what one more kilometre costs; route-planner weighs detours with it.
func (s *Service) GetKilometreRate(
	_ context.Context, req *quotesv1.KilometreRateRequest,
) (*quotesv1.KilometreRateResponse, error) {
	base, ok := kilometreMicros[req.GetVehicleClass()]
	if !ok {
		return nil, status.Errorf(codes.InvalidArgument, "unknown vehicle class %v", req.GetVehicleClass())
	}
	basisPoints, _ := s.fuel.BasisPoints(s.now())
	return &quotesv1.KilometreRateResponse{
		MicrosPerKilometre: base + base*basisPoints/10_000,
		Currency:           "EUR",
	}, nil
}

// Cargo bikes burn no fuel, but their riders' hours are priced by the kilometre.
var kilometreMicros = map[quotesv1.VehicleClass]int64{
	quotesv1.VehicleClass_VEHICLE_CLASS_CARGO_BIKE:   310_000,
	quotesv1.VehicleClass_VEHICLE_CLASS_NIGHT_VAN:    540_000,
	quotesv1.VehicleClass_VEHICLE_CLASS_LOCKER_TRUCK: 790_000,
}

// Breakdown is a price before it becomes a message: the net amount and each surcharge in the order it was added.
type Breakdown struct {
	NetCents   int64
	Surcharges []Surcharge
	FuelStale  bool
}

// Surcharge has the code that appears on the merchant's invoice.
type Surcharge struct {
	Code        string
	AmountCents int64
}

// TotalCents is what the merchant pays.
func (b Breakdown) TotalCents() int64 {
	total := b.NetCents
	for _, surcharge := range b.Surcharges {
		total += surcharge.AmountCents
	}
	return total
}

func (b Breakdown) response(validUntil time.Time) *quotesv1.GetQuoteResponse {
	response := &quotesv1.GetQuoteResponse{
		QuoteId:        newQuoteID(),
		AmountCents:    b.TotalCents(),
		Currency:       "EUR",
		ValidUntil:     timestamppb.New(validUntil),
		FuelIndexStale: b.FuelStale,
	}
	for _, surcharge := range b.Surcharges {
		response.Surcharges = append(response.Surcharges, &quotesv1.Surcharge{
			Code: surcharge.Code, AmountCents: surcharge.AmountCents,
		})
	}
	return response
}
