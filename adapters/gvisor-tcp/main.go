// HTTPS server and client on gVisor's TCP, a whole TCP/IP in user space. Its IP packets travel in UDP datagrams, one in
// each, as a program without rights can send no others. Everything that decides about sending is as gVisor has it.
package main

import "cc-conformance/adapter"

func main() {
	adapter.Program{
		Name:   "gvisor-tcp",
		Module: "gvisor.dev/gvisor",
		Title:  "gVisor",
		// As gVisor calls them (pkg/tcpip/transport/tcp/protocol.go, availableCongestionControl).
		Algorithms: []string{"cubic", "reno"},
		Server:     serve,
		Client:     fetch,
	}.Run()
}
