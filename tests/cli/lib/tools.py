"""What tests/cli/tools/TOOL.py asks of each tool of examples/tools/list.txt, for tests in Python that ask it of all."""
import os


def names(root):
    """The programs: all rows but those of modules."""
    with open(os.path.join(root, 'examples/tools/list.txt'), encoding='utf-8') as file:
        rows = [[field.strip() for field in line.split('|')] for line in file if '|' in line and line[0] != '#']
    return [row[1] for row in rows if row[0] != 'module']


def asked(root, test, space, fail):
    """(TOOL, its function TEST, which sees the names in space as well). A tool without one fails."""
    for tool in names(root):
        path = os.path.join(root, 'tests/cli/tools', tool + '.py')
        own = dict(space)
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                exec(compile(file.read(), path, 'exec'), own)  # its functions speak the test's own words
        if test in own:
            yield tool, own[test]
        else:
            fail(f'{tool} is a tool, and nobody says what {test}.py asks of it: '
                 f'write {test}() into tests/cli/tools/{tool}.py')
