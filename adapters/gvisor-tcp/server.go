package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
)

func endpoint() string {
	return net.JoinHostPort(os.Getenv("CC_ADDRESS"), os.Getenv("CC_PORT"))
}

func serve() error {
	certificate, err := tls.LoadX509KeyPair(os.Getenv("CC_CERT"), os.Getenv("CC_KEY"))
	if err != nil {
		return err
	}
	secrets, err := tlsConfig()
	if err != nil {
		return err
	}
	secrets.Certificates = []tls.Certificate{certificate}
	address, err := net.ResolveUDPAddr("udp4", endpoint())
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp4", address)
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
	go http.Serve(tls.NewListener(listener, secrets), http.HandlerFunc(answer))
	for {
		// A client that went away makes one call fail; those that come after it are served.
		if err := inside.receive(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if path := os.Getenv("SSLKEYLOGFILE"); path != "" {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		config.KeyLogWriter = file
	}
	return config, nil
}

// answer answers with a file of the folder CC_WWW.
func answer(response http.ResponseWriter, request *http.Request) {
	name := strings.TrimPrefix(request.URL.Path, "/")
	if name != filepath.Base(name) || name == ".." {
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
	response.Write(body)
}
