// Package fuel keeps the weekly fuel index and knows what to do when it cannot be had.
package fuel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// FallbackBasisPoints is the surcharge the merchants' contract names for weeks without an index: 11.5 %.
const FallbackBasisPoints = 1150

const (
	defaultMaxStaleness = 36 * time.Hour
	requestTimeout      = 4 * time.Second
	maxAttempts         = 4
	firstDelay          = 500 * time.Millisecond
)

// ErrThrottled is returned when the provider answers 429; the delay it asks for is honoured.
var ErrThrottled = errors.New("fuel index: too many requests")

type reading struct {
	BasisPoints int64     `json:"basis_points"`
	PublishedAt time.Time `json:"published_at"`
}

// Client polls the index and answers from memory, so that no quote ever waits for it.
type Client struct {
	url          string
	maxStaleness time.Duration
	http         *http.Client
	last         atomic.Pointer[reading]
}

// NewClient returns a client that has nothing yet; the first poll fills it.
func NewClient(url string, maxStaleness time.Duration) *Client {
	return &Client{url: url, maxStaleness: maxStaleness, http: &http.Client{Timeout: requestTimeout}}
}

// MaxStalenessFromEnv reads FUEL_INDEX_MAX_STALENESS_HOURS; a value that is no number is a reason not to start.
func MaxStalenessFromEnv() time.Duration {
	raw, set := os.LookupEnv("FUEL_INDEX_MAX_STALENESS_HOURS")
	if !set {
		return defaultMaxStaleness
	}
	hours, err := strconv.Atoi(raw)
	if err != nil {
		panic(fmt.Sprintf("FUEL_INDEX_MAX_STALENESS_HOURS=%q is not a whole number of hours", raw))
	}
	return time.Duration(hours) * time.Hour
}

// BasisPoints is the surcharge for a moment, and whether the index was too old and the fallback was used.
func (c *Client) BasisPoints(at time.Time) (int64, bool) {
	last := c.last.Load()
	if last == nil || at.Sub(last.PublishedAt) > c.maxStaleness {
		return FallbackBasisPoints, true
	}
	return last.BasisPoints, false
}

// PollEvery fetches until ctx is done. A failed poll keeps the last reading: old is better than none.
func (c *Client) PollEvery(ctx context.Context, interval time.Duration) {
	for {
		if err := c.fetchWithBackoff(ctx); err != nil {
			slog.Warn("fuel index not refreshed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
	}
}

// fetchWithBackoff doubles the delay after every failure and adds jitter.
//
// The jitter is not decoration. On 11 February all twelve pods were throttled in the same second, waited the same
// half second and were throttled again, for forty minutes (docs/incidents/2026-02-11-quote-retry-storm.md).
func (c *Client) fetchWithBackoff(ctx context.Context) error {
	delay := firstDelay
	var err error
	for attempt := 1; attempt <= maxAttempts; attempt++ {
		if err = c.fetch(ctx); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(withJitter(delay)):
		}
		delay *= 2
	}
	return fmt.Errorf("gave up after %d attempts: %w", maxAttempts, err)
}

// withJitter spreads a delay evenly over [delay/2, 3·delay/2).
func withJitter(delay time.Duration) time.Duration {
	return delay/2 + rand.N(delay)
}

func (c *Client) fetch(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/index/latest", nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusTooManyRequests:
		return ErrThrottled
	default:
		return fmt.Errorf("fuel index answered %s", response.Status)
	}
	var fresh reading
	if err := json.NewDecoder(response.Body).Decode(&fresh); err != nil {
		return fmt.Errorf("fuel index sent something unreadable: %w", err)
	}
	c.last.Store(&fresh)
	return nil
}
