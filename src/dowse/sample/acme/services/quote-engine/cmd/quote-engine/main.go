// Command quote-engine serves prices over gRPC.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"github.com/grpc/grpc-go"
	"github.com/grpc/grpc-go/health"
	healthpb "github.com/grpc/grpc-go/health/grpc_health_v1"

	quotesv1 "wrenfold.example/quote-engine/gen/quotes/v1"
	"wrenfold.example/quote-engine/internal/cache"
	"wrenfold.example/quote-engine/internal/fuel"
	"wrenfold.example/quote-engine/internal/pricing"
	"wrenfold.example/quote-engine/internal/store"
)

func main() {
	maxConcurrent := flag.Uint("max-concurrent", 256, "streams per connection before callers have to wait")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, uint32(*maxConcurrent)); err != nil {
		slog.Error("quote-engine ends", "error", err)
		os.Exit(1)
	}
}

// run wires the parts together and serves until ctx is done.
func run(ctx context.Context, maxConcurrent uint32) error {
	pool, err := pgxpool.New(ctx, os.Getenv("TARIFF_DB_URL"))
	if err != nil {
		return fmt.Errorf("tariff-db: %w", err)
	}
	defer pool.Close()

	tariffs := store.NewTariffs(pool)
	if err := tariffs.Reload(ctx); err != nil {
		return fmt.Errorf("no tariffs at start, refusing to guess prices: %w", err)
	}
	go tariffs.ReloadEvery(ctx, 10*time.Minute)

	index := fuel.NewClient(os.Getenv("FUEL_INDEX_URL"), fuel.MaxStalenessFromEnv())
	go index.PollEvery(ctx, time.Hour)

	quotes := cache.NewQuotes(redis.NewClient(&redis.Options{
		Addr:         os.Getenv("RATE_CACHE_ADDR"),
		DialTimeout:  200 * time.Millisecond,
		ReadTimeout:  50 * time.Millisecond,
		PoolSize:     64,
		MinIdleConns: 8,
	}))

	server := grpc.NewServer(grpc.MaxConcurrentStreams(maxConcurrent))
	quotesv1.RegisterQuoteServiceServer(server, pricing.NewService(tariffs, index, quotes))
	healthpb.RegisterHealthServer(server, health.NewServer())

	listener, err := net.Listen("tcp", ":9090")
	if err != nil {
		return fmt.Errorf("cannot listen on 9090: %w", err)
	}
	go serveMetrics(":9102")
	go func() {
		<-ctx.Done()
		// Load balancers need a moment to notice that we are leaving.
		time.Sleep(3 * time.Second)
		server.GracefulStop()
	}()
	slog.Info("quote-engine listens", "addr", listener.Addr().String())
	return server.Serve(listener)
}

func serveMetrics(addr string) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.Handler())
	if err := http.ListenAndServe(addr, mux); err != nil {
		slog.Error("metrics endpoint ends", "error", err)
	}
}
