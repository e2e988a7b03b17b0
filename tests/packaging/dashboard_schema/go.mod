module haulout.dev/haulout/tests/packaging/dashboard_schema

go 1.26.0

require github.com/grafana/grafana-foundation-sdk/go v0.0.22
