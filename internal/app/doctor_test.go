package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDoctorSaysWhatIsMissing: each runtime and project by name, and an exit code that a script can see.
func TestDoctorSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	project := filepath.Join(dir, "shop")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(env ...string) (code int, out string) {
		var stdout, stderr bytes.Buffer
		all := append([]string{"HOME=" + dir, "PATH=" + filepath.Join(dir, "nothing"), "DRAWBRIDGE_DATA_DIR=" + filepath.Join(dir, "data")}, env...)
		code = Main(t.Context(), Process{Args: []string{"doctor"}, Env: all, In: strings.NewReader(""), Out: &stdout, Err: &stderr})
		return code, stdout.String() + stderr.String()
	}
	code, out := run("DRAWBRIDGE_PROJECTS=shop="+project+",gone="+filepath.Join(dir, "gone"), "DRAWBRIDGE_MODEL_URL=http://127.0.0.1:1/v1", "DRAWBRIDGE_MODEL=m")
	for _, want := range []string{"project shop: " + project, "project gone: " + filepath.Join(dir, "gone") + " is no folder", "runtime native: failed", "problem: "} {
		if !strings.Contains(out, want) {
			t.Errorf("the doctor does not say %q:\n%s", want, out)
		}
	}
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}
