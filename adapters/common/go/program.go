// Package adapter is what adapters in Go share: verbs, settings, certificates, files, and the client's report. Settings
// come in the CC_ variables of the adapter contract.
package adapter

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
)

const notOffered = 127

// Program is an adapter: `NAME server | client | describe`.
type Program struct {
	Name string
	// Module is the path of the stack's module, and Title what precedes its version in a description.
	Module, Title string
	// Algorithms are congestion controls, as the stack calls them.
	Algorithms []string
	// Server serves until it is told to end; Client fetches the one body, or is nil where the stack has none.
	Server, Client func() error
}

// Run does what the arguments ask for, and ends the process.
func (p Program) Run() {
	verb := ""
	if len(os.Args) == 2 {
		verb = os.Args[1]
	}
	err := fmt.Errorf("usage: %s server|client|describe", p.Name)
	switch {
	case verb == "describe":
		err = p.describe()
	case verb == "server" && !slices.Contains(p.Algorithms, os.Getenv("CC_CALLED")), verb == "client" && p.Client == nil:
		os.Exit(notOffered)
	case verb == "server":
		err = p.Server()
	case verb == "client":
		err = p.Client()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (p Program) describe() error {
	build, _ := debug.ReadBuildInfo()
	version := ""
	for _, used := range build.Deps {
		if used.Path != p.Module {
			continue
		}
		// A working tree that replaces the module is not of the version in go.mod, and does not say of which it is.
		stated := used.Version
		if used.Replace != nil {
			stated = "v0.0.0"
		}
		version = p.Title + " " + stated + ", " + runtime.Version()
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"version": version, "algorithms": p.Algorithms})
}
