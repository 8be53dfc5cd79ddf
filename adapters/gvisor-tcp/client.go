package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"cc-conformance/adapter"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
)

func fetch() error {
	secrets, err := adapter.ClientTLS()
	if err != nil {
		return err
	}
	server, err := netip.ParseAddrPort(adapter.Endpoint())
	if err != nil {
		return err
	}
	start := time.Now()
	inside, own, err := connect(server)
	if err != nil {
		return err
	}
	var handshake time.Duration
	transport := &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			to := tcpip.FullAddress{NIC: card, Addr: serverAddress, Port: port}
			from := tcpip.FullAddress{NIC: card, Addr: own}
			connection, err := gonet.DialTCPWithBind(ctx, inside.Stack, from, to, ipv4.ProtocolNumber)
			if err != nil {
				return nil, err
			}
			encrypted := tls.Client(connection, secrets)
			err = encrypted.HandshakeContext(ctx)
			handshake = time.Since(start)
			return encrypted, err
		},
	}
	return adapter.Fetch(transport, start, &handshake)
}

// connect returns a network that ends at the server, and its address there.
func connect(server netip.AddrPort) (*network, tcpip.Address, error) {
	// Connected, as only then it is told that nobody listens.
	socket, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(server))
	if err != nil {
		return nil, tcpip.Address{}, err
	}
	own := clientAddress(uint16(socket.LocalAddr().(*net.UDPAddr).Port))
	inside, err := newNetwork(socket, own, "")
	if err != nil {
		return nil, own, err
	}
	inside.setPeer(serverAddress, server)
	go func() {
		fmt.Fprintln(os.Stderr, inside.receive())
		os.Exit(1)
	}()
	return inside, own, nil
}
