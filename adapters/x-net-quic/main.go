// HTTP/3 server on golang.org/x/net/quic, everything that decides about sending as that package has it by default.
package main

import "cc-conformance/adapter"

func main() {
	adapter.Program{
		Name:   "x-net-quic",
		Module: "golang.org/x/net",
		Title:  "golang.org/x/net/quic",
		// It has one, no way to choose another, and no name to ask for (congestion_reno.go:14).
		Algorithms: []string{"reno"},
		Server:     serve,
	}.Run()
}
