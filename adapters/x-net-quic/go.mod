module x-net-quic-adapter

go 1.26.0

require (
	github.com/quic-go/qpack v0.6.0
	golang.org/x/net v0.62.0
)

require (
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

require cc-conformance/adapter v0.0.0

replace cc-conformance/adapter => ../common/go
