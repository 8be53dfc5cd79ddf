package main

import (
	"bufio"
	"context"
	"io"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"
)

// Files that are still written: quic-go's own tracer leaves nothing to wait for, and so loses the end.
var openQlogs sync.WaitGroup

type qlogFile struct {
	*bufio.Writer
	file *os.File
}

func (f qlogFile) Close() error {
	defer openQlogs.Done()
	if err := f.Flush(); err != nil {
		return err
	}
	return f.file.Close()
}

// openQlog writes what a connection does to a file in the folder CC_QLOG, if there is such a folder.
func openQlog(_ context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
	folder := os.Getenv("CC_QLOG")
	if folder == "" {
		return nil
	}
	file, err := os.Create(filepath.Join(folder, id.String()+".sqlog"))
	if err != nil {
		log.Print(err)
		return nil
	}
	openQlogs.Add(1)
	trace := newTrace(qlogFile{bufio.NewWriter(file), file}, isClient, id)
	go trace.Run()
	return trace
}

// newTrace calls quic-go's function, which takes the schemas of events, too, before v0.65.
func newTrace(file io.WriteCloser, isClient bool, id quic.ConnectionID) *qlogwriter.FileSeq {
	function := reflect.ValueOf(qlogwriter.NewConnectionFileSeq)
	arguments := []reflect.Value{reflect.ValueOf(file), reflect.ValueOf(isClient), reflect.ValueOf(id)}
	if function.Type().NumIn() > len(arguments) {
		arguments = append(arguments, reflect.ValueOf([]string{"urn:ietf:params:qlog:events:quic-12"}))
	}
	return function.Call(arguments)[0].Interface().(*qlogwriter.FileSeq)
}
