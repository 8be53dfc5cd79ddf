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
	"sync"
	"syscall"

	"github.com/quic-go/quic-go/http3"
)

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
	server := http3.Server{
		TLSConfig:  http3.ConfigureTLSConfig(secrets),
		QUICConfig: quicConfig(),
		Handler:    &folder{path: os.Getenv("CC_WWW"), bodies: map[string][]byte{}},
	}
	asked, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	context.AfterFunc(asked, func() { server.Close() })
	if err := server.Serve(socket); err != http.ErrServerClosed {
		return err
	}
	openQlogs.Wait()
	return nil
}

// folder answers with its files.
type folder struct {
	path   string
	mutex  sync.Mutex
	bodies map[string][]byte
}

func (f *folder) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	body, err := f.body(strings.TrimPrefix(request.URL.Path, "/"))
	if err != nil {
		http.NotFound(response, request)
		return
	}
	response.Header().Set("Content-Length", strconv.Itoa(len(body)))
	response.Header().Set("Content-Type", "application/octet-stream")
	// In one piece: at the end of each piece the connection would wait for the next one, as quic-go keeps no send buffer.
	response.Write(body)
}

// body is a file's content, read once.
func (f *folder) body(name string) ([]byte, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if body, ok := f.bodies[name]; ok {
		return body, nil
	}
	if name != filepath.Base(name) || name == ".." {
		return nil, os.ErrNotExist
	}
	body, err := os.ReadFile(filepath.Join(f.path, name))
	if err == nil {
		f.bodies[name] = body
	}
	return body, err
}
