package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/quic-go/quic-go/http3"
)

// serve answers requests for the files of CC_WWW until a signal ends it.
func serve() error {
	config, err := tlsConfig()
	if err != nil {
		return err
	}
	certificate, err := tls.LoadX509KeyPair(os.Getenv("CC_CERT"), os.Getenv("CC_KEY"))
	if err != nil {
		return err
	}
	config.Certificates = []tls.Certificate{certificate}
	address, err := net.ResolveUDPAddr("udp4", endpoint())
	if err != nil {
		return err
	}
	// YOUR STACK, from here on: serve, with the congestion control that CC_CALLED names and otherwise its defaults.
	socket, err := net.ListenUDP("udp4", address)
	if err != nil {
		return err
	}
	server := http3.Server{TLSConfig: http3.ConfigureTLSConfig(config), Handler: http.HandlerFunc(answer)}
	asked, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	context.AfterFunc(asked, func() { server.Close() })
	if err := server.Serve(socket); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func answer(response http.ResponseWriter, request *http.Request) {
	name := strings.TrimPrefix(request.URL.Path, "/")
	// Bodies are named by their size. Refusing all other names also blocks paths that lead out of the folder.
	_, err := strconv.ParseUint(name, 10, 63)
	if err != nil {
		http.NotFound(response, request)
		return
	}
	body, err := os.ReadFile(filepath.Join(os.Getenv("CC_WWW"), name))
	if err != nil {
		http.NotFound(response, request)
		return
	}
	response.Header().Set("Content-Length", strconv.Itoa(len(body)))
	response.Header().Set("Content-Type", "application/octet-stream")
	// Write the body in one piece: quic-go keeps no send buffer, so the connection would wait after each piece.
	response.Write(body)
}
