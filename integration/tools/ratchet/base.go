package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// loadMode makes packages.Load parse what is asked for and take the rest from
// the compiler's export data.
const loadMode = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
	packages.NeedTypesInfo | packages.NeedImports

func load(dir string, patterns ...string) ([]*packages.Package, error) {
	all, err := packages.Load(&packages.Config{Mode: loadMode, Dir: dir}, patterns...)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("%s: %w", p.PkgPath, p.Errors[0])
		}
	}
	return all, nil
}

// arrowsBefore returns the arrows of packages, by name, in the commit in which
// the file of maxima was changed last, and that commit.
func arrowsBefore(maxima, module string, names []string) (map[string]arrows, string, error) {
	commit, err := git("log", "-1", "--format=%H", "--", maxima)
	if err != nil || commit == "" {
		return nil, "", fmt.Errorf("no commit of %s is known: %w", maxima, err)
	}
	dir, err := os.MkdirTemp("", "ratchet-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	tar := filepath.Join(dir, "tree.tar")
	if _, err := git("archive", "-o", tar, commit); err != nil {
		return nil, "", err
	}
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return nil, "", err
	}
	if out, err := exec.Command("tar", "-xf", tar, "-C", tree).CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("tar: %w: %s", err, out)
	}
	before := map[string]arrows{}
	for _, name := range names {
		all, err := load(tree, "./"+name)
		if err != nil || len(all) != 1 || all[0].PkgPath != module+"/"+name {
			continue // the package is new: so are its arrows
		}
		_, before[name] = findArrows(all[0])
	}
	return before, commit[:12], nil
}

func git(args ...string) (string, error) {
	var errs strings.Builder
	cmd := exec.Command("git", args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, errs.String())
	}
	return strings.TrimSpace(string(out)), nil
}
