// Package dashboard_schema checks the shipped dashboard against the types that Grafana publishes of its dashboards.
package dashboard_schema

import (
	"bytes"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func TestDashboardHasGrafanasSchema(t *testing.T) {
	text, err := os.ReadFile("../../../packaging/grafana/haulout.json")
	if err != nil {
		t.Fatal(err)
	}
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(bargauge.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(table.VariantConfig())
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	var made dashboard.Dashboard
	// The error of a panel without a defect is a list without entries, and not nil.
	if err := made.UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
		t.Errorf("Grafana does not know a field, or its type is another one:\n%v", err)
	}
	if err := made.Validate(); err != nil {
		t.Errorf("a value is not allowed:\n%v", err)
	}
	if len(made.Panels) < 20 || len(made.Templating.List) != 3 {
		t.Errorf("read %d panels and %d variables", len(made.Panels), len(made.Templating.List))
	}
	for right, wrong := range map[string]string{
		`"gridPos": {`:        `"gridPosition": {`,  // unknown to a panel
		`"graphMode": "none"`: `"graphMod": "none"`, // to the options of one type of panels
		`"expr": `:            `"query": `,          // to a query of Prometheus
		`"showHeader": true`:  `"showHeader": "yes"`,
	} {
		other := bytes.Replace(text, []byte(right), []byte(wrong), 1)
		if bytes.Equal(other, text) {
			t.Errorf("the dashboard has no %s", right)
		}
		if err := new(dashboard.Dashboard).UnmarshalJSONStrict(other); err == nil || err.Error() == "" {
			t.Errorf("a dashboard with %s was accepted", wrong)
		}
	}
}
