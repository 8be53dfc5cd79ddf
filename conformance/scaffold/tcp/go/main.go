// my-stack as HTTPS server and client: one program with the verbs of the adapter contract.
// It works as it is, over the kernel's TCP. Put your own stack where a comment says YOUR STACK.
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
)

// YOUR STACK: its own names for its congestion controls; adapter.json says which algorithm each of them is.
var algorithms = []string{"cubic", "reno"}

const notOffered = 127

func main() {
	verbs := map[string]func() error{"server": serve, "client": fetch, "describe": describe}
	if len(os.Args) != 2 || verbs[os.Args[1]] == nil {
		fail(1, "usage: stack server|client|describe")
	}
	if err := verbs[os.Args[1]](); err != nil {
		fail(1, err)
	}
}

func describe() error {
	// YOUR STACK: print every version that affects how it behaves.
	version := "my-stack 0.1, " + runtime.Version()
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"version": version, "algorithms": algorithms})
}

// fail prints the reason in one line and ends the program.
func fail(status int, why any) {
	fmt.Fprintln(os.Stderr, "my-stack:", why)
	os.Exit(status)
}

// endpoint returns the address on which the server listens and to which the client connects.
func endpoint() string {
	return net.JoinHostPort(os.Getenv("CC_ADDRESS"), os.Getenv("CC_PORT"))
}

// tlsConfig allows TLS 1.3 and nothing older. TLS secrets are written to SSLKEYLOGFILE if that is set.
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
