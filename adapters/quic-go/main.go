// HTTP/3 server and client on quic-go, everything that decides about sending as quic-go has it by default.
// Called as: server | client | describe. Settings come in the CC_ variables of the adapter contract.
package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/quic-go/quic-go"
)

const notOffered = 127

// quic-go has one algorithm, no way to choose another, and no name to ask for (internal/ackhandler/sent_packet_handler.go:160).
var algorithms = []string{"reno"}

func main() {
	verb, err := "", error(nil)
	if len(os.Args) == 2 {
		verb = os.Args[1]
	}
	switch verb {
	case "server":
		if !slices.Contains(algorithms, os.Getenv("CC_CALLED")) {
			os.Exit(notOffered)
		}
		err = serve()
	case "client":
		err = fetch()
	case "describe":
		err = describe()
	default:
		err = errors.New("usage: quic-go server|client|describe")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func describe() error {
	build, _ := debug.ReadBuildInfo()
	version := ""
	for _, module := range build.Deps {
		if module.Path == "github.com/quic-go/quic-go" {
			version = "quic-go " + module.Version + ", " + runtime.Version()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"version": version, "algorithms": algorithms})
}

// Where the server listens and the client connects.
func endpoint() string {
	return net.JoinHostPort(os.Getenv("CC_ADDRESS"), os.Getenv("CC_PORT"))
}

// The defaults, with qlog where that is asked for.
func quicConfig() *quic.Config {
	return &quic.Config{Tracer: openQlog}
}

func tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if path := os.Getenv("SSLKEYLOGFILE"); path != "" {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		config.KeyLogWriter = file
	}
	return config, nil
}
