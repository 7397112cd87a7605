package modeltest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	projectMod = "module example.com/shop\n\ngo 1.21\n"

	projectReadme = `# shop

A very small project: amounts, totals and discounts. ` + "`go test ./...`" + ` shows that something is wrong with it.
`

	projectMain = `package main

import (
	"fmt"

	"example.com/shop/price"
)

func main() {
	total := price.Total(499, 1250, 301)
	fmt.Println("total:", total)
	fmt.Println("with 10 % off:", price.Discount(total, 10))
}
`

	projectPrice = `// Package price does sums with amounts in cents.
package price

// Total adds up amounts.
func Total(cents ...int) int {
	sum := 0
	for _, c := range cents {
		sum += c
	}
	return sum
}

// Discount takes a percentage off an amount. What is taken off is rounded down to a full cent.
func Discount(cents, percent int) int {
	return cents - cents/100*percent
}
`

	projectTest = `package price

import "testing"

func TestTotal(t *testing.T) {
	if got := Total(1, 20, 300); got != 321 {
		t.Errorf("Total(1, 20, 300) = %d, want 321", got)
	}
}

func TestDiscount(t *testing.T) {
	for _, c := range []struct{ cents, percent, want int }{
		{1000, 10, 900},
		{250, 10, 225},
		{99, 50, 50},
	} {
		if got := Discount(c.cents, c.percent); got != c.want {
			t.Errorf("Discount(%d, %d) = %d, want %d", c.cents, c.percent, got, c.want)
		}
	}
}
`
)

// Workspace writes the demonstration's project into a folder, which is made if it is not there: a small Go module
// without dependencies, with a mistake and a test that finds it. Files of the same names are replaced. Where git is
// installed it becomes a repository with one commit, without anything of the user's git configuration.
func Workspace(dir string) error {
	for name, text := range map[string]string{
		"go.mod": projectMod, "README.md": projectReadme, "main.go": projectMain,
		"price/price.go": projectPrice, "price/price_test.go": projectTest,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("modeltest: workspace: %w", err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return fmt.Errorf("modeltest: workspace: %w", err)
		}
	}
	return repository(dir)
}

func repository(dir string) error {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil // a project without a repository is one, too
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, args := range [][]string{
		{"init", "-q", "--template="},
		{"config", "user.name", "Drawbridge demo"},
		{"config", "user.email", "demo@localhost"},
		{"add", "-A"},
		{"commit", "-q", "--allow-empty", "-m", "Begin"},
	} {
		cmd := exec.CommandContext(ctx, git, args...)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("modeltest: workspace: git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}
