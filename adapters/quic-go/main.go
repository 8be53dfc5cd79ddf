// HTTP/3 server and client on quic-go, everything that decides about sending as quic-go has it by default.
package main

import (
	"cc-conformance/adapter"

	"github.com/quic-go/quic-go"
)

func main() {
	adapter.Program{
		Name:   "quic-go",
		Module: "github.com/quic-go/quic-go",
		Title:  "quic-go",
		// It has one, no way to choose another, and no name to ask for (internal/ackhandler/sent_packet_handler.go:160).
		Algorithms: []string{"reno"},
		Server:     serve,
		Client:     fetch,
	}.Run()
}

// The defaults, with qlog where that is asked for.
func quicConfig() *quic.Config {
	return &quic.Config{Tracer: openQlog}
}
