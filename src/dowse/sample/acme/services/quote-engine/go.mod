module wrenfold.example/quote-engine

go 1.24

require (
	github.com/jackc/pgx/v5 v5.7.1
	github.com/prometheus/client_golang v1.20.5
	github.com/redis/go-redis/v9 v9.7.0
	github.com/grpc/grpc-go v1.68.0
	github.com/protocolbuffers/protobuf-go v1.35.1
)
