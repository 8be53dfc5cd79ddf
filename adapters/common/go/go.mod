module cc-conformance/adapter

go 1.26.0
