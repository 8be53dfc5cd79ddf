package main

import (
	"context"
	"crypto/tls"
	"time"

	"cc-conformance/adapter"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Above what any path of the grid holds, so that the sender's congestion window is the limit from the start.
const windowBytes = 64 << 20

func fetch() error {
	secrets, err := adapter.ClientTLS()
	if err != nil {
		return err
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
			connection, err := quic.DialAddr(ctx, adapter.Endpoint(), tls, config)
			handshake = time.Since(start)
			return connection, err
		},
	}
	defer openQlogs.Wait()
	defer transport.Close()
	return adapter.Fetch(transport, start, &handshake)
}
