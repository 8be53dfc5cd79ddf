// HTTP/3 server on golang.org/x/net/quic, everything that decides about sending as that package has it by default.
// Called as: server | describe. Settings come in the CC_ variables of the adapter contract.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
)

const notOffered = 127

// The package has one algorithm, no way to choose another, and no name to ask for (congestion_reno.go:14).
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
		os.Exit(notOffered)
	case "describe":
		err = describe()
	default:
		err = errors.New("usage: x-net-quic server|client|describe")
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
		if module.Path == "golang.org/x/net" {
			version = "golang.org/x/net/quic " + module.Version + ", " + runtime.Version()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"version": version, "algorithms": algorithms})
}
