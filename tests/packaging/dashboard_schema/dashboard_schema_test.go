// Package dashboard_schema checks the shipped dashboard against the types that Grafana publishes of its dashboards.
package dashboard_schema

import (
	"bytes"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func TestDashboardHasGrafanasSchema(t *testing.T) {
	text, err := os.ReadFile("../../../packaging/grafana/haulout.json")
	if err != nil {
		t.Fatal(err)
	}
	plugins.RegisterDefaultPlugins()
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
	for _, wrong := range []string{`"gridPosition": {`, `"gridPos": [`} {
		other := bytes.Replace(text, []byte(`"gridPos": {`), []byte(wrong), 1)
		if err := new(dashboard.Dashboard).UnmarshalJSONStrict(other); err == nil || err.Error() == "" {
			t.Errorf("a panel with %s was accepted", wrong)
		}
	}
}
