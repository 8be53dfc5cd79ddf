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
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Above what any path of the grid holds, so that the sender's congestion window is the limit from the start.
const windowBytes = 64 << 20

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
	windows := quicConfig()
	windows.InitialStreamReceiveWindow, windows.MaxStreamReceiveWindow = windowBytes, windowBytes
	windows.InitialConnectionReceiveWindow, windows.MaxConnectionReceiveWindow = windowBytes, windowBytes

	var handshake time.Duration
	start := time.Now()
	transport := &http3.Transport{
		TLSClientConfig: secrets,
		QUICConfig:      windows,
		Dial: func(ctx context.Context, _ string, tls *tls.Config, config *quic.Config) (*quic.Conn, error) {
			connection, err := quic.DialAddr(ctx, endpoint(), tls, config)
			handshake = time.Since(start)
			return connection, err
		},
	}
	defer openQlogs.Wait()
	defer transport.Close()
	size := os.Getenv("CC_BYTES")
	client := http.Client{Transport: transport}
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
