package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"cc-conformance/adapter"

	"golang.org/x/net/quic"
	"golang.org/x/net/quic/qlog"
)

// More than any path of the grid holds: with the 1 MiB that a stream buffers by default, the buffer would be the limit,
// not congestion control. This is for what a program writes; it changes nothing of how that is sent.
const sendBufferBytes = 64 << 20

var files adapter.Folder

func serve() error {
	config, err := configuration()
	if err != nil {
		return err
	}
	endpoint, err := quic.Listen("udp4", adapter.Endpoint(), config)
	if err != nil {
		return err
	}
	asked, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	for {
		connection, err := endpoint.Accept(asked)
		if asked.Err() != nil {
			endpoint.Close(asked) // at once, without waiting for clients to acknowledge
			return nil
		}
		if err != nil {
			return err
		}
		go answer(connection)
	}
}

func configuration() (*quic.Config, error) {
	secrets, err := adapter.ServerTLS()
	if err != nil {
		return nil, err
	}
	secrets.NextProtos = []string{"h3"}
	config := &quic.Config{TLSConfig: secrets, MaxStreamWriteBufferSize: sendBufferBytes}
	if folder := os.Getenv("CC_QLOG"); folder != "" {
		config.QLogLogger = slog.New(qlog.NewJSONHandler(qlog.HandlerOptions{Level: quic.QLogLevelFrame, Dir: folder}))
	}
	return config, nil
}

// answer answers a connection's requests until the client closes it.
func answer(connection *quic.Conn) {
	defer connection.Close()
	if err := sendSettings(connection); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			return
		}
		if stream.IsReadOnly() {
			continue // the client's control stream and those of QPACK, which say nothing that is needed here
		}
		go func() {
			if err := respond(stream); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
}

func sendSettings(connection *quic.Conn) error {
	stream, err := connection.NewSendOnlyStream(context.Background())
	if err != nil {
		return err
	}
	if _, err := stream.Write(control); err != nil {
		return err
	}
	return stream.Flush()
}

func respond(stream *quic.Stream) error {
	path, err := readPath(stream)
	if err != nil {
		return err
	}
	content, err := files.Body(path)
	if err != nil {
		stream.Write(notFound())
	} else {
		// In one piece, as the window counts as not used up wherever there is nothing to send.
		stream.Write(append(found(len(content)), content...))
	}
	// Both ways: else it would count as open for ever, and the client be allowed no more than 100 of them.
	return stream.Close()
}
