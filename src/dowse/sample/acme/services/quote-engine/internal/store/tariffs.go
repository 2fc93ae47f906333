// Package store reads tariffs from Postgres and keeps them in memory.
package store

import (
	"context"
	"log/slog"
	"sort"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Band is a weight limit and its price; bands of one merchant and zone are kept in ascending order.
type Band struct {
	UpToGrams int64
	NetCents  int64
}

type key struct {
	merchant string
	zone     int
}

// Tariffs answers from an immutable table that Reload replaces as a whole, so readers need no lock.
type Tariffs struct {
	pool  *pgxpool.Pool
	table atomic.Pointer[map[key][]Band]
}

// NewTariffs returns an empty table; call Reload before use.
func NewTariffs(pool *pgxpool.Pool) *Tariffs {
	return &Tariffs{pool: pool}
}

// Reload reads every tariff that is valid today.
func (t *Tariffs) Reload(ctx context.Context) error {
	rows, err := t.pool.Query(ctx, `
		SELECT merchant_id, zone, up_to_grams, net_cents
		  FROM tariffs
		 WHERE valid_from <= current_date AND (valid_to IS NULL OR valid_to > current_date)
		 ORDER BY merchant_id, zone, up_to_grams`)
	if err != nil {
		return err
	}
	defer rows.Close()
	table := make(map[key][]Band)
	for rows.Next() {
		var k key
		var band Band
		if err := rows.Scan(&k.merchant, &k.zone, &band.UpToGrams, &band.NetCents); err != nil {
			return err
		}
		table[k] = append(table[k], band)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	t.table.Store(&table)
	return nil
}

// ReloadEvery keeps the table fresh; a failure keeps the old one and is logged.
func (t *Tariffs) ReloadEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := t.Reload(ctx); err != nil {
				slog.Warn("tariffs not reloaded, prices are as of the last success", "error", err)
			}
		}
	}
}

// NetCents finds the first band that holds the weight. The merchant "*" is the public price list.
func (t *Tariffs) NetCents(merchant string, zone int, grams int64) (int64, bool) {
	table := *t.table.Load()
	for _, name := range []string{merchant, "*"} {
		bands := table[key{name, zone}]
		at := sort.Search(len(bands), func(i int) bool { return bands[i].UpToGrams >= grams })
		if at < len(bands) {
			return bands[at].NetCents, true
		}
	}
	return 0, false
}
