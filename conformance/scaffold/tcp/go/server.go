// Listen with plain TCP: TCP_CONGESTION is an option of TCP, and newer versions of Go use Multipath TCP by default.
//go:debug multipathtcp=0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// serve answers requests for the files of CC_WWW until a signal ends it.
func serve() error {
	called := os.Getenv("CC_CALLED")
	if !offered(called) {
		fail(notOffered, fmt.Sprintf("there is no %q", called))
	}
	config, err := tlsConfig()
	if err != nil {
		return err
	}
	certificate, err := tls.LoadX509KeyPair(os.Getenv("CC_CERT"), os.Getenv("CC_KEY"))
	if err != nil {
		return err
	}
	config.Certificates = []tls.Certificate{certificate}
	// YOUR STACK, from here on and in listen: serve, with the congestion control `called`.
	listener, err := listen(called)
	if err != nil {
		return err
	}
	return http.Serve(tls.NewListener(listener, config), http.HandlerFunc(answer))
}

func offered(called string) bool {
	for _, name := range algorithms {
		if name == called {
			return true
		}
	}
	return false
}

// listen returns a listener whose connections send with the kernel's congestion control `called`.
func listen(called string) (net.Listener, error) {
	var refused error
	config := net.ListenConfig{Control: func(_, _ string, socket syscall.RawConn) error {
		return socket.Control(func(fd uintptr) {
			refused = syscall.SetsockoptString(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CONGESTION, called)
		})
	}}
	listener, err := config.Listen(context.Background(), "tcp4", endpoint())
	if refused != nil {
		fail(notOffered, fmt.Sprintf("the kernel refuses %s: %v", called, refused))
	}
	return listener, err
}

func answer(response http.ResponseWriter, request *http.Request) {
	name := strings.TrimPrefix(request.URL.Path, "/")
	// Bodies are named by their size. Refusing all other names also blocks paths that lead out of the folder.
	if _, err := strconv.ParseUint(name, 10, 63); err != nil {
		http.NotFound(response, request)
		return
	}
	response.Header().Set("Content-Type", "application/octet-stream")
	http.ServeFile(response, request, filepath.Join(os.Getenv("CC_WWW"), name))
}
