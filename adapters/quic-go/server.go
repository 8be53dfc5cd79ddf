package main

import (
	"context"
	"net/http"
	"os/signal"
	"syscall"

	"cc-conformance/adapter"

	"github.com/quic-go/quic-go/http3"
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
	server := http3.Server{
		TLSConfig:  http3.ConfigureTLSConfig(secrets),
		QUICConfig: quicConfig(),
		Handler:    &adapter.Folder{},
	}
	asked, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	context.AfterFunc(asked, func() { server.Close() })
	if err := server.Serve(socket); err != http.ErrServerClosed {
		return err
	}
	openQlogs.Wait()
	return nil
}
