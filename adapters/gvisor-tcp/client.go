package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
)

// fetch gets the one body, discards it and prints what it took.
func fetch() error {
	authority, err := os.ReadFile(os.Getenv("CC_CA"))
	if err != nil {
		return err
	}
	secrets, err := tlsConfig()
	if err != nil {
		return err
	}
	secrets.ServerName = os.Getenv("CC_HOSTNAME")
	secrets.RootCAs = x509.NewCertPool()
	if !secrets.RootCAs.AppendCertsFromPEM(authority) {
		return fmt.Errorf("no certificate in %s", os.Getenv("CC_CA"))
	}
	server, err := netip.ParseAddrPort(endpoint())
	if err != nil {
		return err
	}
	start := time.Now()
	inside, own, err := connect(server)
	if err != nil {
		return err
	}
	var handshake time.Duration
	client := http.Client{Transport: &http.Transport{
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
	}}
	size := os.Getenv("CC_BYTES")
	response, err := client.Get("https://" + os.Getenv("CC_HOSTNAME") + ":" + os.Getenv("CC_PORT") + "/" + size)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", response.Status)
	}
	received, err := io.Copy(io.Discard, response.Body)
	took := time.Since(start)
	if err != nil || fmt.Sprint(received) != size {
		return fmt.Errorf("the connection ended after %d of %s bytes: %v", received, size, err)
	}
	report := map[string]any{"bytes": received, "completion_s": took.Seconds(), "handshake_s": handshake.Seconds()}
	return json.NewEncoder(os.Stdout).Encode(report)
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
