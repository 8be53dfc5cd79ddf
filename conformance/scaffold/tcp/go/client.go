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
	"os"
	"strconv"
	"time"
)

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
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		dialer := tls.Dialer{Config: config}
		connection, err := dialer.DialContext(ctx, "tcp4", endpoint())
		handshake = time.Since(start)
		return connection, err
	}
	client := http.Client{Transport: &http.Transport{DialTLSContext: dial}}
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
