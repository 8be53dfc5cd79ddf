package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"

	"cc-conformance/adapter"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
)

func serve() error {
	secrets, err := adapter.ServerTLS()
	if err != nil {
		return err
	}
	socket, err := adapter.ListenUDP()
	if err != nil {
		return err
	}
	inside, err := newNetwork(socket, serverAddress, os.Getenv("CC_CALLED"))
	if err != nil {
		return err
	}
	listener, err := gonet.ListenTCP(inside.Stack, tcpip.FullAddress{Addr: serverAddress, Port: port}, ipv4.ProtocolNumber)
	if err != nil {
		return err
	}
	go http.Serve(tls.NewListener(listener, secrets), &adapter.Folder{})
	for {
		// A client that went away makes one call fail; those that come after it are served.
		if err := inside.receive(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}
