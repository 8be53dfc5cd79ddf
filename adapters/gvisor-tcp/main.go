// HTTPS server and client on gVisor's TCP, a whole TCP/IP in user space. Its IP packets travel in UDP datagrams, one in
// each, as a program without rights can send no others. Everything that decides about sending is as gVisor has it.
// Called as: server | client | describe. Settings come in the CC_ variables of the adapter contract.
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

const (
	notOffered = 127
	module     = "gvisor.dev/gvisor"
)

// As gVisor calls them (pkg/tcpip/transport/tcp/protocol.go, availableCongestionControl).
var algorithms = []string{"cubic", "reno"}

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
		err = errors.New("usage: gvisor-tcp server|client|describe")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func describe() error {
	build, _ := debug.ReadBuildInfo()
	version := ""
	for _, used := range build.Deps {
		if used.Path == module {
			version = "gVisor " + used.Version + ", " + runtime.Version()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"version": version, "algorithms": algorithms})
}
