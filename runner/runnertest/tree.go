package runnertest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// tree is all that there is below folders, byte for byte: kinds, permissions, times, contents and where links lead, by
// path. What one of the patterns names, relative to its folder, is left out, with all that is below it.
func (e *exam) tree(except []string, folders ...string) map[string]string {
	e.Helper()
	all := map[string]string{}
	for _, dir := range folders {
		err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(dir, file)
			if err != nil {
				return err
			}
			for _, pattern := range except {
				if match, err := path.Match(pattern, filepath.ToSlash(rel)); err != nil || !match {
					continue
				}
				if d.IsDir() {
					return filepath.SkipDir
				}
				return nil
			}
			all[file], err = entry(file, d)
			return err
		})
		if err != nil {
			e.Fatalf("%v", err)
		}
	}
	return all
}

func entry(file string, d fs.DirEntry) (string, error) {
	info, err := d.Info()
	if err != nil {
		return "", err
	}
	// What is in a folder stands below it; its time says no more, and programs that only look may change it.
	if info.IsDir() {
		return info.Mode().String(), nil
	}
	text := fmt.Sprintf("%s %d", info.Mode(), info.ModTime().UnixNano())
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(file)
		return text + " -> " + to, err
	case info.Mode().IsRegular():
		b, err := os.ReadFile(file)
		return text + fmt.Sprintf(" %q", b), err
	}
	return text, nil
}

// differences are the paths in which two trees differ.
func differences(before, after map[string]string) []string {
	var list []string
	for file, is := range after {
		if was, ok := before[file]; !ok || was != is {
			list = append(list, file)
		}
	}
	for file := range maps.Keys(before) {
		if _, ok := after[file]; !ok {
			list = append(list, file)
		}
	}
	slices.Sort(list)
	return list
}
