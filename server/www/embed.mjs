// SPDX-License-Identifier: MIT
//
// A folder of files becomes part of the daemon: `node embed.mjs build/www` writes, beside the folder, site.bin, the
// bytes of all files and of their gzip twins in a row, and site.c, the table of server/site.h that points into them.
// The same folder gives the same bytes: nothing in them tells the time or the place.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

const MEDIA = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  png: 'image/png',
  svg: 'image/svg+xml',
  txt: 'text/plain; charset=utf-8',
};

function fail(text) {
  console.error(`embed: ${text}`);
  process.exit(1);
}

/** Paths of all files below the folder, relative to it, with slashes. */
function walk(folder, prefix = '') {
  return readdirSync(join(folder, prefix), { withFileTypes: true }).flatMap((entry) => {
    const name = prefix + entry.name;
    if (!/^[\w-]+(\.[\w-]+)*$/.test(entry.name)) fail(`${name}: names are letters, digits, "-", "_" and dots between`);
    if (entry.isDirectory()) return walk(folder, `${name}/`);
    return entry.isFile() ? [name] : fail(`${name}: is neither a file nor a folder`);
  });
}

/** index.html is its folder, a/b.html is /a/b, all else goes by its own name. */
function pathOf(name) {
  return '/' + name.replace(/(^|\/)index\.html$/, '$1').replace(/\.html$/, '');
}

/** Appends the bytes to the blob; the C initialiser of their struct site_body. */
function body(blob, bytes) {
  const tag = createHash('sha256').update(bytes).digest('hex').slice(0, 16);
  const at = blob.reduce((n, part) => n + part.length, 0);
  blob.push(bytes);
  return `{AT(${at}), ${bytes.length}, "\\"${tag}\\""}`;
}

function row(blob, folder, name) {
  const media = MEDIA[name.split('.').pop()] ?? fail(`${name}: no media type for such a name`);
  const immutable = /^assets\/.*-[0-9A-Za-z]{8,}\.\w+$/.test(name); // a hash of its contents
  const plain = readFileSync(join(folder, name));
  const gzip = gzipSync(plain, { level: 9 }); // without a name and a time
  const bodies = [body(blob, plain), gzip.length < plain.length ? body(blob, gzip) : '{0}'];
  return { path: pathOf(name), text: `    {"${pathOf(name)}", "${media}", ${immutable}, ${bodies.join(', ')}},\n` };
}

if (process.argv.length !== 3) fail('called as: node embed.mjs FOLDER');
const folder = process.argv[2];
const blob = [];
const rows = walk(folder).sort().map((name) => row(blob, folder, name)).sort((a, b) => (a.path < b.path ? -1 : 1));
if (rows[0]?.path !== '/') fail('there is no index.html');

writeFileSync(join(dirname(folder), 'site.bin'), Buffer.concat(blob));
writeFileSync(join(dirname(folder), 'site.c'), `/* Made by server/www/embed.mjs: server/site.h says what it is. */
#include "site.h"

extern const unsigned char _binary_site_bin_start[];
#define AT(n) (_binary_site_bin_start + (n))

static const struct site_file files[] = {
${rows.map((one) => one.text).join('')}};

const struct site site_embedded = {files, sizeof files / sizeof *files};
`);
