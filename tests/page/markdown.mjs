// Markdown, and the HTML of the nodes that it must become.

const LINK = 'rel="noreferrer noopener"';

export const MARKDOWN = [
  ['', ''],
  ['one\ntwo\n\nthree', '<p>one<br>two</p><p>three</p>'],
  ['**a** *b* __c__ _d_ ***e*** ~~f~~', '<p><strong>a</strong> <em>b</em> <strong>c</strong> <em>d</em> <strong><em>e</em></strong> <s>f</s></p>'],
  ['2 * 3 * 4, snake_case_name, a**', '<p>2 * 3 * 4, snake_case_name, a**</p>'],
  ['`<b>` and ``a ` b``', '<p><code>&lt;b&gt;</code> and <code>a ` b</code></p>'],
  ['\\*no\\* `open', '<p>*no* `open</p>'],
  ['## Two ##\ntext', '<h5>Two</h5><p>text</p>'],
  ['#hash', '<p>#hash</p>'],
  ['- a\n- b\n  - c\n- d', '<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>'],
  ['3. a\n4. b', '<ol start="3"><li>a</li><li>b</li></ol>'],
  ['1. a\n\n   more\n\n2. b', '<ol><li>a<p>more</p></li><li>b</li></ol>'],
  ['text\n- a\ngoes on\n\nafter', '<p>text</p><ul><li>a<br>goes on</li></ul><p>after</p>'],
  ['> a\n> - b', '<blockquote><p>a</p><ul><li>b</li></ul></blockquote>'],
  ['a\n\n---\n\nb', '<p>a</p><hr><p>b</p>'],
  ['```js\n<i>\n**x**\n```\nz', '<pre tabindex="0" role="group" aria-label="Code: js"><code>&lt;i&gt;\n**x**</code></pre><p>z</p>'],
  ['```\nnot yet closed', '<pre tabindex="0" role="group" aria-label="Code"><code>not yet closed</code></pre>'],
  [
    '| a | b |\n|---|--:|\n| **1** | 2 |\n| 3 |',
    '<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th scope="col">a</th><th class="right" scope="col">b</th></tr></thead><tbody><tr><td><strong>1</strong></td><td class="right">2</td></tr><tr><td>3</td><td class="right"></td></tr></tbody></table></div>',
  ],
  ['a | b', '<p>a | b</p>'],
  ['[t](https://e.org/a_(b) "title")', `<p><a href="https://e.org/a_(b)" ${LINK}>t</a></p>`],
  ['see https://e.org/x_y_z.', `<p>see <a href="https://e.org/x_y_z" ${LINK}>https://e.org/x_y_z</a>.</p>`],
  ['<https://e.org/>', `<p><a href="https://e.org/" ${LINK}>https://e.org/</a></p>`],
  ['![picture](https://e.org/p.png)', `<p><a href="https://e.org/p.png" ${LINK}>picture</a></p>`],
  ['[a [b](https://e.org/b)](https://e.org/a)', `<p><a href="https://e.org/a" ${LINK}>a b</a></p>`],
  ['[x](javascript:alert(1))', '<p>[x](javascript:alert(1))</p>'],
  ['[x](java\tscript:alert(1)) [y](vbscript:x) [z](data:text/html,x)', '<p>[x](java\tscript:alert(1)) [y](vbscript:x) [z](data:text/html,x)</p>'],
  ['<script>alert(1)</script>', '<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>'],
  ['<img src=x onerror=alert(1)>', '<p>&lt;img src=x onerror=alert(1)&gt;</p>'],
];
