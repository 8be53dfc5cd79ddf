package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// More bytes than any path of the grid holds, so that only the congestion window limits the sender from the start.
const windowBytes = 64 << 20

// fetch downloads one body, discards it, and prints its size and the times as one JSON line.
func fetch() error {
	size, err := strconv.ParseInt(os.Getenv("CC_BYTES"), 10, 64)
	if err != nil {
		return fmt.Errorf("CC_BYTES: %w", err)
	}
	config, err := tlsConfig()
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(os.Getenv("CC_CA"))
	if err != nil {
		return err
	}
	config.ServerName = os.Getenv("CC_HOSTNAME")
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(authority) {
		return fmt.Errorf("no certificate in %s", os.Getenv("CC_CA"))
	}

	// YOUR STACK, from here on: connect, send the request, receive the body.
	start := time.Now()
	var handshake time.Duration
	// Connect to CC_ADDRESS, because no DNS resolves the name.
	dial := func(ctx context.Context, _ string, tls *tls.Config, settings *quic.Config) (*quic.Conn, error) {
		connection, err := quic.DialAddr(ctx, endpoint(), tls, settings)
		handshake = time.Since(start)
		return connection, err
	}
	windows := &quic.Config{
		InitialStreamReceiveWindow: windowBytes, MaxStreamReceiveWindow: windowBytes,
		InitialConnectionReceiveWindow: windowBytes, MaxConnectionReceiveWindow: windowBytes,
	}
	transport := &http3.Transport{TLSClientConfig: config, QUICConfig: windows, Dial: dial}
	defer transport.Close()
	client := http.Client{Transport: transport}
	response, err := client.Get(fmt.Sprintf("https://%s:%s/%d", config.ServerName, os.Getenv("CC_PORT"), size))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", response.Status)
	}
	received, err := io.Copy(io.Discard, response.Body)
	completion := time.Since(start)
	if err != nil {
		return err
	}
	if received != size {
		return fmt.Errorf("the body has %d bytes, not %d", received, size)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"bytes": received, "completion_s": completion.Seconds(), "handshake_s": handshake.Seconds(),
	})
}
