// Package cache remembers quotes in Redis, so that a booking pays the price that was shown.
package cache

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/protocolbuffers/protobuf-go/proto"

	quotesv1 "wrenfold.example/quote-engine/gen/quotes/v1"
)

// QuoteTTL is how long a price is promised; the merchants' terms say fifteen minutes.
const QuoteTTL = 15 * time.Minute

// Quotes is safe for concurrent use.
type Quotes struct {
	redis *redis.Client
}

// NewQuotes wraps a client of rate-cache.
func NewQuotes(client *redis.Client) *Quotes {
	return &Quotes{redis: client}
}

// Remember stores a quote until it expires.
func (q *Quotes) Remember(ctx context.Context, quote *quotesv1.GetQuoteResponse) error {
	raw, err := proto.Marshal(quote)
	if err != nil {
		return err
	}
	return q.redis.Set(ctx, redisKey(quote.GetQuoteId()), raw, QuoteTTL).Err()
}

// Recall returns a remembered quote, or nil when it has expired or was never given.
func (q *Quotes) Recall(ctx context.Context, quoteID string) (*quotesv1.GetQuoteResponse, error) {
	raw, err := q.redis.Get(ctx, redisKey(quoteID)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	quote := new(quotesv1.GetQuoteResponse)
	return quote, proto.Unmarshal(raw, quote)
}

func redisKey(quoteID string) string {
	return "quote:v2:" + quoteID
}
