package adapter

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
)

// Endpoint is where the server listens and the client connects.
func Endpoint() string {
	return net.JoinHostPort(os.Getenv("CC_ADDRESS"), os.Getenv("CC_PORT"))
}

// ListenUDP opens the server's socket.
func ListenUDP() (*net.UDPConn, error) {
	address, err := net.ResolveUDPAddr("udp4", Endpoint())
	if err != nil {
		return nil, err
	}
	return net.ListenUDP("udp4", address)
}

// ServerTLS is TLS 1.3 with the certificate that the suite made.
func ServerTLS() (*tls.Config, error) {
	config, err := tls13()
	if err != nil {
		return nil, err
	}
	certificate, err := tls.LoadX509KeyPair(os.Getenv("CC_CERT"), os.Getenv("CC_KEY"))
	config.Certificates = []tls.Certificate{certificate}
	return config, err
}

// ClientTLS is TLS 1.3 that trusts the suite's authority alone.
func ClientTLS() (*tls.Config, error) {
	config, err := tls13()
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(os.Getenv("CC_CA"))
	if err != nil {
		return nil, err
	}
	config.ServerName = os.Getenv("CC_HOSTNAME")
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("no certificate in %s", os.Getenv("CC_CA"))
	}
	return config, nil
}

func tls13() (*tls.Config, error) {
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
