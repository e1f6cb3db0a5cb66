DROP TABLE browser_marks;
